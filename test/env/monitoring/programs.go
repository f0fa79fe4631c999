package monitoring

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/foresail/foresail/test/env/controlplane"
)

// Binaries is a folder that holds the programs of one build.
type Binaries struct {
	// Dir is named after what the build depends on, so its content never changes.
	Dir   string
	agent string // flag with which its Prometheus is an agent
}

const (
	prometheusModule    = "github.com/prometheus/prometheus"
	prometheusBinary    = "prometheus"
	promtoolBinary      = "promtool"
	metricsServerBinary = "metrics-server"
)

// Promtool is the path of the program that checks rules and runs their tests.
func (b Binaries) Promtool() string { return b.path(promtoolBinary) }

func (b Binaries) path(name string) string { return filepath.Join(b.Dir, name) }

// Build compiles what is missing into <repository>/.cache/monitoring, as
// [controlplane.Programs.Build] does, and returns where it lies.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	return build(ctx, programs(), "--agent", progress)
}

// BuildOldest compiles the oldest Prometheus that Foresail supports, which
// docs/operating.md#supported-versions names.
func BuildOldest(ctx context.Context, progress io.Writer) (Binaries, error) {
	return build(ctx, oldest(), "--enable-feature=agent", progress)
}

func build(ctx context.Context, p controlplane.Programs, agent string, progress io.Writer) (Binaries, error) {
	root, err := controlplane.Root()
	if err != nil {
		return Binaries{}, fmt.Errorf("build monitoring: %w", err)
	}
	dir, err := p.Build(ctx, root, progress)
	return Binaries{Dir: dir, agent: agent}, err
}

// orBuild returns binaries, or builds them if they are the zero value.
func (b Binaries) orBuild(ctx context.Context, progress io.Writer) (Binaries, error) {
	if b != (Binaries{}) {
		return b, nil
	}
	return Build(ctx, progress)
}

func programs() controlplane.Programs {
	return controlplane.Programs{
		Title:  "monitoring",
		Module: "test/env/monitoring/components",
		Cache:  "monitoring",
		List: []controlplane.Program{
			{Name: prometheusBinary, Package: prometheusModule + "/cmd/prometheus"},
			// a link more, as Prometheus has its packages
			{Name: promtoolBinary, Package: prometheusModule + "/cmd/promtool"},
			{Name: metricsServerBinary, Package: "sigs.k8s.io/metrics-server/cmd/metrics-server"},
		},
		// The other service discoveries bring a cloud's SDK each: with them the build takes several
		// times as long.
		Tags:    "remove_all_sd,enable_kubernetes_sd",
		Release: prometheusModule,
		Stamp:   stampPrometheus,
	}
}

func oldest() controlplane.Programs {
	return controlplane.Programs{
		Title: "oldest Prometheus", Module: "test/env/monitoring/oldest", Cache: "monitoring-oldest",
		List:    []controlplane.Program{{Name: prometheusBinary, Package: prometheusModule + "/cmd/prometheus"}},
		Release: prometheusModule, Stamp: stampPrometheus,
	}
}

// stampPrometheus sets the version that Prometheus reports. As the version of its module, v0.313.5,
// that of the program is 3.13.5.
func stampPrometheus(version string) (string, error) {
	release, err := prometheusRelease(version)
	if err != nil {
		return "", err
	}
	return "-X github.com/prometheus/common/version.Version=" + release, nil
}

// prometheusRelease turns the version of the module, 0.<major><minor in two digits>.<patch>, into that of the
// release. Before release 3 it is 0.<minor>.<patch>.
func prometheusRelease(version string) (string, error) {
	var number, patch int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "0.%d.%d", &number, &patch); err != nil {
		return "", fmt.Errorf("%q: want one such as v0.313.5: %w", version, err)
	}
	return fmt.Sprintf("%d.%d.%d", max(2, number/100), number%100, patch), nil
}
