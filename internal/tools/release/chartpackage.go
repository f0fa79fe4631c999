package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// chartFolder is the chart's folder below the root of the repository.
const chartFolder = "manifests/chart/foresail"

// chartPackage packs the chart as helm package does, with the version and the image of the release.
func chartPackage(root, version, digest string, modified time.Time) (product, error) {
	chart, err := loader.LoadDir(filepath.Join(root, chartFolder))
	if err != nil {
		return product{}, err
	}
	number := chartVersion(version)
	chart.Metadata.Version, chart.Metadata.AppVersion = number, number
	annotations := chart.Metadata.Annotations
	annotations["artifacthub.io/prerelease"] = fmt.Sprint(strings.Contains(number, "-"))
	annotations["artifacthub.io/images"] = fmt.Sprintf("- {name: foresail, image: %q}\n", reference("v"+number, digest))
	chart.StampModTimes(modified)
	folder, err := os.MkdirTemp("", "foresail-chart-")
	if err != nil {
		return product{}, err
	}
	defer os.RemoveAll(folder)
	path, err := chartutil.Save(chart, folder)
	if err != nil {
		return product{}, err
	}
	content, err := os.ReadFile(path)
	return product{filepath.Base(path), content}, err
}
