package main

import (
	"bytes"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// repository is where releases publish the image.
const repository = "ghcr.io/foresail/foresail"

// reference names the image of a version, by its digest where that is known.
func reference(version, digest string) string {
	ref := repository + ":" + version
	if digest != "" {
		ref += "@" + digest
	}
	return ref
}

const installHeader = `# Foresail %s: its kinds, a namespace, and Foresail in it. Apply it with
#   kubectl apply --server-side -f install.yaml
# https://github.com/foresail/foresail/blob/main/docs/install.md has Helm, kustomize, upgrades, and how to uninstall.
`

// installManifest renders the base of the manifests with an image that registries have.
func installManifest(root, version, digest string) ([]byte, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
		filepath.Join(root, "manifests", "base"))
	if err != nil {
		return nil, err
	}
	text, err := resources.AsYaml()
	if err != nil {
		return nil, err
	}
	const built = "image: foresail:dev\n"
	if bytes.Count(text, []byte(built)) != 1 {
		return nil, fmt.Errorf("manifests/base does not have %q once", built)
	}
	text = bytes.ReplaceAll(text, []byte(built), []byte("image: "+reference(version, digest)+"\n"))
	return append(fmt.Appendf(nil, installHeader, version), text...), nil
}
