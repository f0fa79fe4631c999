package main

import (
	"errors"

	"github.com/foresail/foresail/pipeline"
)

// Exit codes, part of the command's interface.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // unusable arguments: unknown commands and flags, values they do not take, specs that cannot be read
)

// usageError marks an error as one of the arguments, found after the command has started.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// unusable marks an error as one of the arguments, so that the command exits with 2.
func unusable(err error) error { return usageError{err} }

// badFlag returns an error that says what a flag accepts instead of its value.
func badFlag(flag string, value any, accept string) error {
	return unusable(&pipeline.FieldError{Field: "--" + flag, Value: value, Accept: accept})
}

// exitCode returns the exit code of a failure. Errors before a command has started are errors of its arguments.
func exitCode(err error, started bool) int {
	if !started || errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}
