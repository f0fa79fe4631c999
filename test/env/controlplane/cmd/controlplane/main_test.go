package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/foresail/foresail/test/env/controlplane"
)

func TestParseArgs(t *testing.T) {
	extra, err := parseArgs([]string{"kube-apiserver=--v=2", "kwok=--x", "kube-apiserver=--profiling=true"})
	require.NoError(t, err)
	require.Equal(t, map[controlplane.Component][]string{
		controlplane.APIServer: {"--v=2", "--profiling=true"},
		controlplane.Kwok:      {"--x"},
	}, extra)
	_, err = parseArgs([]string{"--v"})
	require.ErrorContains(t, err, "want component=flag")
}

func TestBadArguments(t *testing.T) {
	for message, args := range map[string][]string{
		`"kubelet": want one of`: {"up", "--arg", "kubelet=--v=2"},
		"Options.Nodes: -1":      {"up", "--nodes=-1"},
		"unknown command":        {"down"},
	} {
		cmd := newCommand()
		cmd.SetArgs(args)
		cmd.SetErr(&bytes.Buffer{})
		require.ErrorContains(t, cmd.ExecuteContext(t.Context()), message)
	}
}

// upOutput ends a running "up" once it has said where the kubeconfig is, after a look at the cluster.
type upOutput struct {
	bytes.Buffer
	look func(kubeconfig string)
}

var kubeconfigLine = regexp.MustCompile(`export KUBECONFIG=(\S+)`)

func (o *upOutput) Write(p []byte) (int, error) {
	n, err := o.Buffer.Write(p)
	if match := kubeconfigLine.FindStringSubmatch(o.String()); match != nil {
		o.look(match[1])
	}
	return n, err
}

func TestUpRunsUntilInterrupted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	var nodes int
	var dir string
	output := &upOutput{look: func(kubeconfig string) {
		defer interrupt()
		dir = filepath.Dir(kubeconfig)
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			t.Error(err)
			return
		}
		list, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		nodes = len(list.Items)
	}}
	cmd := newCommand()
	cmd.SetArgs([]string{"up", "--nodes=2", "--arg=kube-scheduler=--v=1"})
	cmd.SetOut(output)
	var progress strings.Builder
	cmd.SetErr(&progress)
	require.NoError(t, cmd.ExecuteContext(ctx))
	require.Equal(t, 2, nodes)
	require.NotEmpty(t, dir)
	require.NoDirExists(t, dir)
}
