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

// What is read is written again as it was: nothing is lost on the way from one holder of the lease to the next.
func FuzzDecode(f *testing.F) {
	full, err := state.Encode(statetest.Filled())
	require.NoError(f, err)
	f.Add(full)
	f.Add([]byte(`{"version":1,"owner":"","lastUp":"2026-03-01T12:00:00.5+01:00","spared":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := state.Decode(data)
		if err != nil {
			return
		}
		once, err := state.Encode(r)
		require.NoError(t, err)
		again, err := state.Decode(once)
		require.NoError(t, err)
		twice, err := state.Encode(again)
		require.NoError(t, err)
		assert.Equal(t, string(once), string(twice))
	})
}
