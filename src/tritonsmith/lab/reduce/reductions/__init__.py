"""Ways to make IR smaller: operations, attributes, control flow and loops go, one at a time."""
