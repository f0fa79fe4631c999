// Package nodepool kills the processes of a node pool at every call that changes something, and
// sees whether others take their work up without anything being lost, done twice or left behind.
//
// A process is a whole [nodepool.Pool] with real clients. Their transport numbers the calls and
// ends the process at one of them. Around the processes everything else goes on: the cloud, the
// pods with their controllers and scheduler, and a clock that the tests move on. The API server is
// a real one, without the controllers that would disturb that clock.
package nodepool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/foresail/foresail/test/env/controlplane"
)

var (
	server *controlplane.Cluster // the API server of all tests
	atEnd  []func() error        // what ends other servers
)

func TestMain(m *testing.M) {
	code, err := runWithServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithServer(m *testing.M) (code int, err error) {
	// The tests that run at once wait more than they work. The command line goes before this.
	if err := flag.Set("test.parallel", "6"); err != nil {
		return 1, err
	}
	flag.Parse()
	if err := forgetAWS(); err != nil {
		return 1, err
	}
	ctx := context.Background()
	server, err = controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr,
		APIOnly:  true,
		// No controller makes the service accounts that pods would have, nor lifts the taint of
		// Nodes that are new.
		ExtraArgs: map[controlplane.Component][]string{controlplane.APIServer: {"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"}},
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		for _, end := range append(atEnd, server.Stop) {
			err = errors.Join(err, end())
		}
	}()
	if err := applyDefinition(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// forgetAWS keeps what this machine is told about the real AWS from clients of the one that is played.
func forgetAWS() error {
	return errors.Join(os.Unsetenv("AWS_CA_BUNDLE"), os.Unsetenv("AWS_PROFILE"), os.Unsetenv("AWS_ENDPOINT_URL"),
		os.Setenv("AWS_CONFIG_FILE", os.DevNull), os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull))
}

func applyDefinition(ctx context.Context) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	definition, err := os.ReadFile(filepath.Join(root, "manifests", "crds", "foresail.dev_workerpools.yaml"))
	if err != nil {
		return err
	}
	_, err = server.Apply(ctx, definition)
	return err
}
