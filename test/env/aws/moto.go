package awstest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/ports"
)

const (
	startDeadline = time.Minute
	stopDeadline  = 5 * time.Second
	pollInterval  = 50 * time.Millisecond
)

// images are the images of an account. moto's own 1,285 take a tenth of a second of CPU for each account.
//
//go:embed images.json
var images []byte

// Moto is moto's server, which has the resources of all accounts in memory.
type Moto struct {
	process  *controlplane.Process
	dir      string
	address  string
	accounts atomic.Int64

	mu    sync.Mutex
	lists map[string]*node // answers that are the same for all accounts
}

// StartMoto starts moto's server for a test and stops it when the test ends. Tests that share it
// have a [Moto.Cloud] each.
func StartMoto(t testing.TB) *Moto {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // with an installation
	defer cancel()
	m, err := RunMoto(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// RunMoto starts moto's server, after installing it if needed, and waits until it answers. It runs
// until it is stopped, and on Linux ends with this process.
func RunMoto(ctx context.Context, progress io.Writer) (*Moto, error) {
	python, err := Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "foresail-moto-")
	if err != nil {
		return nil, err
	}
	port, err := ports.Take()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	imagesFile := filepath.Join(dir, "images.json")
	if err := os.WriteFile(imagesFile, images, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	process, err := controlplane.StartProcess("moto", python, filepath.Join(dir, "log"), dir,
		[]string{"-m", "moto.server", "-H", loopback, "-p", strconv.Itoa(port)}, "MOTO_AMIS_PATH="+imagesFile)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	m := &Moto{
		lists: map[string]*node{}, process: process, dir: dir,
		address: net.JoinHostPort(loopback, strconv.Itoa(port)),
	}
	if err := m.wait(ctx); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

func (m *Moto) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	for {
		target := "http://" + m.address + "/moto-api/data.json"
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			return response.Body.Close()
		}
		select {
		case <-m.process.Ended():
			return m.process.Failure()
		case <-ctx.Done():
			return fmt.Errorf("waiting for moto: %w; last lines of its log:\n%s", err, m.process.LogTail())
		case <-time.After(pollInterval):
		}
	}
}

// Stop ends the server and removes its files.
func (m *Moto) Stop() error {
	return errors.Join(m.process.Stop(stopDeadline), os.RemoveAll(m.dir))
}

// LogTail returns the last lines of the server's log.
func (m *Moto) LogTail() string { return m.process.LogTail() }

const loopback = "127.0.0.1"
