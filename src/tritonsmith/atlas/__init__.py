"""What a thing of Triton is, read off one checkout: where it is defined, implemented, called and tested."""
