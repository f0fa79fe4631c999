package cli

import (
	"errors"

	"github.com/foresail/foresail/pipeline"
)

// Exit codes are part of the command's interface.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2 // unusable arguments: unknown commands and flags, values they do not take, specs that cannot be read
)

// UsageError marks an error as one of the arguments, found after the command has started.
type UsageError struct{ error }

// Unwrap returns the error that is marked.
func (e UsageError) Unwrap() error { return e.error }

// Unusable marks an error as one of the arguments, so that the command exits with 2.
func Unusable(err error) error { return UsageError{err} }

// BadFlag returns an error that says what a flag accepts instead of its value.
func BadFlag(flag string, value any, accept string) error {
	return Unusable(&pipeline.FieldError{Field: "--" + flag, Value: value, Accept: accept})
}

// exitCode returns the exit code of a failure. Errors before a command has started are errors of
// its arguments.
func exitCode(err error, started bool) int {
	if !started || errors.As(err, new(UsageError)) {
		return ExitUsage
	}
	return ExitFailed
}
