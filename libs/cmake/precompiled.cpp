// Gives precompiled.hpp its target.
