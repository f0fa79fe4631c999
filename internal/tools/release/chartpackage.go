package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/foresail/foresail/internal/tools/release/chart"
)

// chartPackage is what helm package makes of the chart, with the version of the release. Helm's own has the time of day in it.
func chartPackage(root, version, digest string, modified time.Time) (product, error) {
	folder := filepath.Join(root, chart.Folder)
	var entries []entry
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, path))
		if err == nil && path == "Chart.yaml" {
			content, err = releasedChart(content, version, digest)
		}
		entries = append(entries, entry{"foresail/" + path, 0o644, content})
		return err
	})
	if err != nil {
		return product{}, err
	}
	packed, err := tarball(modified, entries...)
	return product{"foresail-" + chartVersion(version) + ".tgz", packed}, err
}

// releasedChart puts the version and the image of a release into Chart.yaml.
func releasedChart(text []byte, version, digest string) ([]byte, error) {
	number := chartVersion(version)
	for _, change := range [][2]string{
		{"\nversion: 0.0.0-dev\n", "\nversion: " + number + "\n"},
		{"\nappVersion: dev\n", "\nappVersion: \"" + number + "\"\n"},
		{"  artifacthub.io/prerelease: \"true\"\n", fmt.Sprintf("  artifacthub.io/prerelease: %q\n  artifacthub.io/images: |\n    - {name: foresail, image: %q}\n",
			fmt.Sprint(strings.Contains(number, "-")), reference("v"+number, digest))},
	} {
		if bytes.Count(text, []byte(change[0])) != 1 {
			return nil, fmt.Errorf("the chart does not have %q once in Chart.yaml", change[0])
		}
		text = bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
	}
	return text, nil
}
