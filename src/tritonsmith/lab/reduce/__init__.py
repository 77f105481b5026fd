"""`reduce`: IR on which a pass fails, made small while it fails the same way."""
