package main

import (
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/foresail/foresail/pipeline"
)

// gcPercent replaces Go's default of 100: most of the heap are samples, which live for minutes.
const gcPercent = 50

// memoryLimitVariable is in the environment of the manifests: the memory limit of the container, in bytes.
const memoryLimitVariable = "FORESAIL_MEMORY_LIMIT"

// limitMemory has garbage collected more often as the process comes close to its memory limit. A tenth of that stays free for what the Go runtime
// does not count, such as the program and the buffers of connections. GOGC and GOMEMLIMIT are obeyed.
func limitMemory(getenv func(string) string) error {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	text := getenv(memoryLimitVariable)
	if text == "" || getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return usageError{&pipeline.FieldError{Field: memoryLimitVariable, Value: fmt.Sprintf("%q", text), Accept: "a number of bytes, such as 1073741824"}}
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	return nil
}
