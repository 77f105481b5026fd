"""`reduce`: the Python source of a kernel made small while a symptom stays."""
