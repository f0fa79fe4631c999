package serve

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/foresail/foresail/internal/cli"
)

// testOptionsVariable is the environment variable with values that only tests change, such as
// "extender-warm-up=0s scrape-allow-loopback=true". In a cluster each of them makes Foresail worse: they are
// periods that tests cannot wait for, and addresses that only the pods of tests have.
const testOptionsVariable = "FORESAIL_TEST_OPTIONS"

// readTestOptions sets the values of testOptionsVariable.
func (o *runOptions) readTestOptions(getenv func(string) string) error {
	fs := pflag.NewFlagSet(testOptionsVariable, pflag.ContinueOnError)
	o.sources.addTestOptions(fs)
	o.extender.addTestOptions(fs)
	o.adapter.api.apiService.addTestOptions(fs)
	for word := range strings.FieldsSeq(getenv(testOptionsVariable)) {
		name, value, _ := strings.Cut(word, "=")
		if err := fs.Set(name, value); err != nil {
			return cli.Unusable(fmt.Errorf("%s: %q: %w", testOptionsVariable, word, err))
		}
	}
	return nil
}
