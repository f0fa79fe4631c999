package main

import (
	"strings"
	"sync"
)

// keptLines is how much of the logs an error shows.
const keptLines = 10

// tail is a writer that keeps the last lines; each write is a line. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, string(line))
	t.lines = t.lines[max(0, len(t.lines)-keptLines):]
	return len(line), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "")
}
