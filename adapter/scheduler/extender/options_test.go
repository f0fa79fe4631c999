package extender

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A user who names the fields differently, as a command does, can tell each of them.
func TestValidateNamesEachField(t *testing.T) {
	require.NoError(t, DefaultRules().Validate())
	joined, ok := Rules{MemoryLimit: -1, CPULimit: 2, Target: 1, WarmUp: -1, StaleAfter: -1, MaxWait: -1,
		AssumeTimeout: -1}.Validate().(interface{ Unwrap() []error })
	require.True(t, ok)
	var fields []string
	for _, err := range joined.Unwrap() {
		wrong := &OptionError{}
		require.True(t, errors.As(err, &wrong))
		assert.NotEmpty(t, wrong.Value)
		assert.NotEmpty(t, wrong.Accept)
		fields = append(fields, wrong.Field)
	}
	assert.Equal(t, []string{"MemoryLimit", "CPULimit", "Target", "WarmUp", "StaleAfter", "MaxWait", "AssumeTimeout"},
		fields)
}
