package monitoring

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/foresail/foresail/test/controlplane"
)

// Binaries is a folder that holds the programs of one build.
type Binaries struct {
	// Dir is named after what the build depends on, so its content never changes.
	Dir string
}

const (
	prometheusBinary    = "prometheus"
	promtoolBinary      = "promtool"
	metricsServerBinary = "metrics-server"
)

// Promtool is the path of the program that checks rules and runs their tests.
func (b Binaries) Promtool() string { return b.path(promtoolBinary) }

func (b Binaries) path(name string) string { return filepath.Join(b.Dir, name) }

// Build compiles what is missing into <repository>/.cache/monitoring, as [controlplane.Programs.Build] does, and returns
// where it lies.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	root, err := controlplane.Root()
	if err != nil {
		return Binaries{}, fmt.Errorf("build monitoring: %w", err)
	}
	dir, err := programs().Build(ctx, root, progress)
	return Binaries{Dir: dir}, err
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
		Module: "test/monitoring/components",
		Cache:  "monitoring",
		List: []controlplane.Program{
			{Name: prometheusBinary, Package: "github.com/prometheus/prometheus/cmd/prometheus"},
			{Name: promtoolBinary, Package: "github.com/prometheus/prometheus/cmd/promtool"}, // a link more, as Prometheus has its packages
			{Name: metricsServerBinary, Package: "sigs.k8s.io/metrics-server/cmd/metrics-server"},
		},
		// The other service discoveries bring a cloud's SDK each: with them the build takes several times as long.
		Tags:    "remove_all_sd,enable_kubernetes_sd",
		Release: "github.com/prometheus/prometheus",
		Stamp:   stampPrometheus,
	}
}

// stampPrometheus sets the version that Prometheus reports. As the version of its module, v0.313.5, that of the program is 3.13.5.
func stampPrometheus(version string) (string, error) {
	release, err := prometheusRelease(version)
	if err != nil {
		return "", err
	}
	return "-X github.com/prometheus/common/version.Version=" + release, nil
}

// prometheusRelease turns the version of the module, 0.<major><minor in two digits>.<patch>, into that of the release.
func prometheusRelease(version string) (string, error) {
	var number, patch int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "0.%d.%d", &number, &patch); err != nil {
		return "", fmt.Errorf("%q: want one such as v0.313.5: %w", version, err)
	}
	return fmt.Sprintf("%d.%d.%d", number/100, number%100, patch), nil
}
