package serve

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/foresail/foresail/internal/cli"
)

// refuseFlags returns errors about flags that were given although they have no effect: those whose
// names begin with a prefix.
func refuseFlags(fs *pflag.FlagSet, prefix, accept string) error {
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed && strings.HasPrefix(f.Name, prefix) {
			errs = append(errs, cli.BadFlag(f.Name, fmt.Sprintf("%q", f.Value), accept))
		}
	})
	return errors.Join(errs...)
}

// refuseNames returns an error if names of clients were given without the file of their
// authorities: no client is asked for any. folder is the flag of the folder that would have it.
func refuseNames(fs *pflag.FlagSet, names, folder, authorities string) error {
	if authorities != "" {
		return nil
	}
	return refuseFlags(fs, names,
		"left out unless --"+folder+" has "+authoritiesName+": without it no client needs a certificate")
}

// eachJoined applies to to an error, or to each of those that it joins.
func eachJoined(err error, to func(error) error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return to(err)
	}
	var errs []error
	for _, err := range joined.Unwrap() {
		errs = append(errs, eachJoined(err, to))
	}
	return errors.Join(errs...)
}
