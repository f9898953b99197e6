#!/usr/bin/env python3
"""Runs the whole thing."""
