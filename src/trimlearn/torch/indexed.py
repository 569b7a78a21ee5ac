"""x"""


class Indexed: ...
