"""What a person sees: tables and progress bars."""
