"""What makes a kernel's source smaller, one file for each kind of edit; all pure: a text in, texts out."""
