package main

import (
	"crypto/sha256"
	"encoding/hex"

	"sigs.k8s.io/yaml"
)

// krewPlugin is the manifest by which krew, the plugin manager of kubectl, finds and installs a plugin.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
	Files    []krewFile   `json:"files"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

const downloads = "https://github.com/foresail/foresail/releases/download/"

// krewManifest describes the archives of a release. Its file has the name of the plugin: krew wants it so.
func krewManifest(version string, packed []archive) (product, error) {
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2",
		Kind:       "Plugin",
		Metadata:   map[string]string{"name": "foresail"},
		Spec: krewSpec{
			Version:          "v" + chartVersion(version),
			Homepage:         "https://github.com/foresail/foresail",
			ShortDescription: "Explain what Foresail scales ahead of load",
			Description: `Shows why Foresail scales a Deployment or a pool of workers as it does: forecasts,
decisions and their reasons, why the scheduler extender filtered a node, what a pool
has cost. It prints the HPA for a forecast, and follows the replacement of workers.
Foresail itself runs in the cluster: see the home page.
`,
		},
	}
	for _, a := range packed {
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, krewPlatform{
			Selector: krewSelector{MatchLabels: map[string]string{"os": a.os, "arch": a.arch}},
			URI:      downloads + version + "/" + a.file.name,
			SHA256:   sum(a.file.content),
			Bin:      a.binary,
			Files:    []krewFile{{a.binary, "."}, {"LICENSE", "."}},
		})
	}
	text, err := yaml.Marshal(plugin)
	return product{"foresail.yaml", text}, err
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
