package foresail

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpenDashboard(t *testing.T) {
	p, err := Start(script(t, `test "$1" = run && exec sleep 600; echo "asked $3"; echo "Open http://127.0.0.1:1/?token=x"; exec sleep 600`))
	require.NoError(t, err)
	defer func() { _ = p.Kill() }()
	d, err := p.OpenDashboard(t.Context(), "kubeconfig")
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:1/?token=x", d.URL)
	assert.Contains(t, d.process.LogTail(), "asked http://"+p.Address)
	require.NoError(t, d.Stop())

	failing, err := Start(script(t, `test "$1" = run && exec sleep 600; echo "nothing to show"; exit 1`))
	require.NoError(t, err)
	defer func() { _ = failing.Kill() }()
	_, err = failing.OpenDashboard(t.Context(), "kubeconfig")
	assert.ErrorContains(t, err, "nothing to show")
}
