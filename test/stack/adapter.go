package stack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/foresail/foresail/test/controlplane"
	"github.com/foresail/foresail/test/ports"
)

// Adapter is a running foresail process.
type Adapter struct {
	SecurePort, HTTPPort int
	LogFile              string

	command *exec.Cmd
	exited  chan struct{}
	err     error
}

// StartAdapter runs foresail under the service account of the manifests, with further flags if any are given. It does not
// wait for it to be ready. The process ends with ctx at the latest.
func (s *Stack) StartAdapter(ctx context.Context, name string, flags ...string) (*Adapter, error) {
	kubeconfig, err := s.Cluster.KubeconfigForServiceAccount(ctx, Namespace, ServiceAccount)
	if err != nil {
		return nil, err
	}
	cert, key, err := s.Cluster.ServingCertificate(ServiceName+"."+Namespace+".svc", "localhost")
	if err != nil {
		return nil, err
	}
	a := &Adapter{exited: make(chan struct{}), LogFile: filepath.Join(s.Cluster.Dir(), name+".log")}
	if a.SecurePort, err = ports.Take(); err != nil {
		return nil, err
	}
	if a.HTTPPort, err = ports.Take(); err != nil {
		return nil, err
	}
	a.command = exec.CommandContext(ctx, s.binary, append([]string{"run",
		"--kubeconfig", kubeconfig,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(a.SecurePort),
		"--tls-cert-file", cert, "--tls-private-key-file", key,
		"--http-address", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.HTTPPort)),
		"--leader-election-namespace", Namespace,
	}, flags...)...)
	a.command.Cancel = func() error { return a.command.Process.Signal(syscall.SIGTERM) }
	a.command.WaitDelay = 5 * time.Second
	return a, a.start()
}

func (a *Adapter) start() error {
	log, err := os.OpenFile(a.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	a.command.Stdout, a.command.Stderr = log, log
	a.command.SysProcAttr = dieWithParent()
	if err := a.command.Start(); err != nil {
		return fmt.Errorf("start foresail: %w", err)
	}
	go func() {
		a.err = a.command.Wait()
		_ = log.Close() // the process has ended; what could be written has been
		close(a.exited)
	}()
	return nil
}

// Register has the API server send requests for external metrics to an adapter, and waits until it does.
func (s *Stack) Register(ctx context.Context, a *Adapter) error {
	api := controlplane.AggregatedAPI{
		Group: "external.metrics.k8s.io", Version: "v1beta1",
		Port: a.SecurePort, Namespace: Namespace, Service: ServiceName,
	}
	if err := s.Cluster.RegisterAggregated(ctx, api); err != nil {
		return err
	}
	return s.Cluster.WaitAggregated(ctx, api.Name())
}

// WaitReady waits until /readyz answers with 200.
func (a *Adapter) WaitReady(ctx context.Context) error {
	for {
		code, last, err := a.Get(ctx, "/readyz")
		if code == http.StatusOK && err == nil {
			return nil
		}
		if err != nil {
			last = err.Error()
		}
		select {
		case <-a.exited:
			return fmt.Errorf("foresail has ended: %w; its last words:\n%s", a.err, a.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("foresail is not ready: %s: %w", last, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Get reads a path of the adapter's HTTP port.
func (a *Adapter) Get(ctx context.Context, path string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", a.HTTPPort, path), nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// Kill ends the process as a crash would and waits for its end.
func (a *Adapter) Kill() error {
	if err := a.command.Process.Kill(); err != nil {
		return err
	}
	<-a.exited
	return nil
}

// Stop ends the process as a kubelet would, waits for its end and returns its error.
func (a *Adapter) Stop() error {
	if err := a.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-a.exited
	return a.err
}

// LogTail returns the last lines of the log.
func (a *Adapter) LogTail() []byte {
	content, err := os.ReadFile(a.LogFile)
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-10):], []byte("\n"))
}
