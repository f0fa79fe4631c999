package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

// certDir returns a folder with a certificate for a host, its key, and further files by their names.
func certDir(t *testing.T, host string, files ...string) string {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600))
	for _, file := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), certificate, 0o600))
	}
	return folder
}

// foresail executes a command line and returns its exit code, stdout and stderr.
func foresail(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, cli.NewRoot(NewCommand()), stdin, args...)
}
