"""Where records live and how they are read: arrays, packed bits, frames, files; domains and labels."""
