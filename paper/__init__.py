"""The paper's section 4 on real data: every table and figure, beside the paper's own figures."""
