package foresail

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
)

// Dashboard is the command foresail dashboard, which shows what a process that runs with --dashboard knows.
type Dashboard struct {
	URL     string // for a browser of this machine
	process *controlplane.Process
}

var opened = regexp.MustCompile(`(?m)^Open (\S+)$`)

// OpenDashboard starts the command, with the rights of a kubeconfig, and waits for the address that
// it prints. The command ends with this process at the latest.
func (p *Process) OpenDashboard(ctx context.Context, kubeconfig string) (*Dashboard, error) {
	dir := filepath.Dir(p.LogFile)
	process, err := controlplane.StartProcess("foresail dashboard", p.options.Binary.path,
		filepath.Join(dir, "dashboard.log"), dir,
		[]string{"dashboard", "--server", "http://" + p.Address, "--kubeconfig", kubeconfig})
	if err != nil {
		return nil, err
	}
	for {
		if found := opened.FindStringSubmatch(process.LogTail()); found != nil {
			return &Dashboard{found[1], process}, nil
		}
		select {
		case <-process.Ended():
			return nil, process.Failure()
		case <-ctx.Done():
			_ = process.Stop(stopTimeout)
			return nil, fmt.Errorf("foresail dashboard has printed no address: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop ends the command.
func (d *Dashboard) Stop() error { return d.process.Stop(stopTimeout) }
