package main

import (
	"crypto/sha256"
	"encoding/hex"

	"sigs.k8s.io/yaml"
)

const downloads = "https://github.com/foresail/foresail/releases/download/"

// object is an object of YAML. The module with krew's own types requires client-go v11, with which
// nothing else compiles.
type object map[string]any

// krewManifest describes the archives of a release for krew, the plugin manager of kubectl. Its
// file has the name of the plugin, as krew requires.
func krewManifest(version string, packed []archive) (product, error) {
	var platforms []object
	for _, a := range packed {
		platforms = append(platforms, object{
			"selector": object{"matchLabels": object{"os": a.os, "arch": a.arch}},
			"uri":      downloads + version + "/" + a.file.name,
			"sha256":   sum(a.file.content),
			"bin":      a.binary,
			"files":    []object{{"from": a.binary, "to": "."}, {"from": "LICENSE", "to": "."}},
		})
	}
	text, err := yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   object{"name": "foresail"},
		"spec": object{
			"version":          "v" + chartVersion(version),
			"homepage":         "https://github.com/foresail/foresail",
			"shortDescription": "Explain what Foresail scales ahead of load",
			"description": `Shows why Foresail scales a Deployment or a pool of workers as it does: forecasts,
decisions and their reasons, why the scheduler extender filtered a node, what a pool
has cost. It prints the HPA for a forecast, and follows the replacement of workers.
Foresail itself runs in the cluster: see the home page.
`,
			"platforms": platforms,
		},
	})
	return product{"foresail.yaml", text}, err
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
