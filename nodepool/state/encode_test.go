package state_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/nodepool/state/statetest"
)

func TestDecodeReadsWhatEncodeWrites(t *testing.T) {
	want := statetest.Filled()
	data, err := state.Encode(want)
	require.NoError(t, err)
	got, err := state.Decode(data)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestDecodeRefusesWhatItWouldLose(t *testing.T) {
	for data, want := range map[string]string{
		`{"version": 1, "owner": "", "fromTheFuture": 1}`:                           "fromTheFuture",
		`{"version": 1, "owner": "", "action": {"id": "a", "fromTheFuture": true}}`: "fromTheFuture",
		`{"version": 1, "owner": ""} {}`:                                            "one JSON object",
		`{"owner": "somebody"}`:                                                     "version: 0",
		`{"version": -1}`:                                                           "version: -1",
		`{"version": "1"}`:                                                          "version",
		`null`:                                                                      "version: 0",
		`[]`:                                                                        "array",
		`{"version": 1`:                                                             "unexpected EOF",
	} {
		_, err := state.Decode([]byte(data))
		assert.ErrorContains(t, err, want, data)
	}
}
