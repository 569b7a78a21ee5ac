"""x"""


class Trimmer: ...
