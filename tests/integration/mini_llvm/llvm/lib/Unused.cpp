int mini_unused() { return 2; }
