package state_test

import (
	"strings"
	"testing"
	"unicode/utf8"

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

// Each different text is kept once, shortened, and all of them have a limit.
func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	r := state.Record{Version: 1, Action: &state.Action{}}
	for range 500 {
		r.Action.Slots = append(r.Action.Slots, state.Slot{Error: long})
	}
	bare := func(r state.Record) int {
		data, err := state.Encode(r.Slim())
		require.NoError(t, err)
		return len(data)
	}
	data, err := state.Encode(r)
	require.NoError(t, err)
	assert.Less(t, len(data)-bare(r), 500*len(`"error":"0",`)+300)
	got, err := state.Decode(data)
	require.NoError(t, err)
	assert.Len(t, r.Action.Slots[0].Error, len(long), "the caller's record stays as it is")
	assert.LessOrEqual(t, len(got.Action.Slots[499].Error), 256)
	assert.True(t, utf8.ValidString(got.Action.Slots[499].Error))
	assert.True(t, strings.HasSuffix(got.Action.Slots[499].Error, "ä…"))

	full, err := state.Encode(statetest.Shortage(1000))
	require.NoError(t, err)
	assert.Less(t, len(full)-bare(statetest.Shortage(1000)), 200<<10)
	assert.Less(t, len(full), 1_200_000, "etcd takes 1.5 MiB, with everything else that the object has")
}

func TestDecodeRefusesWhatItWouldLose(t *testing.T) {
	for data, want := range map[string]string{
		`{"version": 1, "owner": "", "fromTheFuture": 1}`:                           "fromTheFuture",
		`{"version": 1, "owner": "", "action": {"id": "a", "fromTheFuture": true}}`: "fromTheFuture",
		`{"version": 1, "owner": ""} {}`:                                            "one JSON object",
		`{"owner": "another"}`:                                                      "version: 0",
		`{"version": -1}`:                                                           "version: -1",
		`{"version": "1"}`:                                                          "version",
		`null`:                                                                      "version: 0",
		`[]`:                                                                        "array",
		`{"version": 1, "action": {"message": "0"}}`:                                `text "0": must be an index below 0`,
		`{"version": 1, "action": {"message": "pods are waiting"}}`: `text "pods are waiting": must be an index below 0`,
		`{"version": 1`: "unexpected EOF",
	} {
		_, err := state.Decode([]byte(data))
		assert.ErrorContains(t, err, want, data)
	}
}

// A record that is read and written stays the same: nothing is lost on the way from one holder of
// the lease to the next.
func FuzzDecode(f *testing.F) {
	full, err := state.Encode(statetest.Filled())
	require.NoError(f, err)
	f.Add(full)
	f.Add([]byte(`{"version":1,"owner":"","lastUp":"2026-03-01T12:00:00.5+01:00","drainBackoff":{}}`))
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
