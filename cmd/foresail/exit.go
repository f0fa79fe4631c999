package main

import (
	"errors"

	"github.com/spf13/cobra"

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

// badFlag says what a flag would accept instead of its value.
func badFlag(flag string, value any, accept string) error {
	return usageError{&pipeline.FieldError{Field: "--" + flag, Value: value, Accept: accept}}
}

// exitCode tells failures from unusable arguments. All that goes wrong before a command has started does so because
// of its arguments.
func exitCode(err error, started bool) int {
	if !started || errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

// markStart notes when a command below root has started, its flags and arguments found to be in order.
func markStart(root *cobra.Command) *bool {
	started := new(bool)
	for _, command := range below(root) {
		inner := command.RunE
		if inner == nil {
			continue
		}
		command.RunE = func(c *cobra.Command, args []string) error {
			*started = true
			return inner(c, args)
		}
	}
	return started
}

// below returns all commands under one.
func below(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range c.Commands() {
		all = append(append(all, sub), below(sub)...)
	}
	return all
}
