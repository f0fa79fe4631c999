package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionTellsWhatTheBuildKnows(t *testing.T) {
	printed := func(args ...string) (code int, stdout string) {
		var out bytes.Buffer
		code = Execute(t.Context(), NewRoot(), args, strings.NewReader(""), &out, io.Discard)
		return code, out.String()
	}
	code, out := printed("version", "--output", "json")
	assert.Equal(t, ExitDone, code)
	var v version
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	assert.Equal(t, versionOf(info), v)
	assert.NotEmpty(t, v.Go)

	code, out = printed("version")
	assert.Equal(t, ExitDone, code)
	assert.Contains(t, out, v.Go)
}

func TestVersionOfABuild(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v0.1.0"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "true"},
			{Key: "vcs.time", Value: "2026-11-21T08:00:00Z"},
			{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"},
		}}
	v := versionOf(info)
	assert.Equal(t, version{Version: "v0.1.0", Commit: "0123abcd", CommitTime: "2026-11-21T08:00:00Z", Modified: true,
		Go: "go1.26.8", Platform: "linux/arm64"}, v)
	var out strings.Builder
	require.NoError(t, printVersion(&out, v, "text"))
	assert.Equal(t, "foresail v0.1.0\ncommit   0123abcd, with changes that are not committed\ngo       go1.26.8 linux/arm64\n", out.String())
}
