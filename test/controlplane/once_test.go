package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMakeOnceFillsAFolderOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache", "key")
	var fills atomic.Int32
	fill := func(context.Context, func(string)) error {
		fills.Add(1)
		return os.WriteFile(filepath.Join(dir, "content"), []byte("whole"), 0o644)
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() { assert.NoError(t, MakeOnce(t.Context(), "thing", dir, nil, fill)) })
	}
	callers.Wait()
	require.EqualValues(t, 1, fills.Load())
	require.FileExists(t, filepath.Join(dir, "content"))
}

func TestMakeOnceFillsAgainWhatWasLeftHalf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "key")
	var progress strings.Builder
	errFull := errors.New("the disk is full")
	err := MakeOnce(t.Context(), "thing", dir, &progress, func(_ context.Context, note func(string)) error {
		note("downloading")
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o644), errFull)
	})
	require.ErrorIs(t, err, errFull)
	require.Contains(t, progress.String(), "thing: making "+dir)
	require.Contains(t, progress.String(), "downloading")
	require.NoError(t, MakeOnce(t.Context(), "thing", dir, nil, func(context.Context, func(string)) error {
		return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644)
	}))
	require.NoFileExists(t, filepath.Join(dir, "half"))
	require.FileExists(t, filepath.Join(dir, "whole"))
}
