package main

import (
	"context"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Write replaces a folder by an OCI layout with the release, under the name of its version.
func (r Release) Write(folder, version string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(r.Index,
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})); err != nil {
		return err
	}
	for _, document := range r.SBOMs {
		if err := path.AppendImage(document); err != nil {
			return err
		}
	}
	return nil
}

// Push writes the release to a registry, such as ghcr.io/foresail/foresail:v1.2.3, with the
// credentials of docker login and the like, and returns the digest.
func (r Release) Push(ctx context.Context, reference string, options ...remote.Option) (name.Digest, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return name.Digest{}, err
	}
	options = append([]remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)},
		options...)
	if err := remote.WriteIndex(ref, r.Index, options...); err != nil {
		return name.Digest{}, err
	}
	for _, document := range r.SBOMs {
		digest, err := document.Digest()
		if err != nil {
			return name.Digest{}, err
		}
		if err := remote.Write(ref.Context().Digest(digest.String()), document, options...); err != nil {
			return name.Digest{}, err
		}
	}
	digest, err := r.Index.Digest()
	return ref.Context().Digest(digest.String()), err
}

// Digest is that of the image for all platforms.
func (r Release) Digest() (v1.Hash, error) { return r.Index.Digest() }
