int miniBits() { return 1; }
