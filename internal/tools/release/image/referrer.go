package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// emptyJSON is the config of artifacts that have none, as the OCI image specification 1.1 has it.
const emptyJSON = "application/vnd.oci.empty.v1+json"

// artifact is a manifest with one blob that says what it refers to. The library writes no artifactType.
type artifact struct {
	manifest []byte
	config   []byte
	blob     v1.Layer
}

// referrer attaches a document to a manifest, as an artifact of the document's type.
func referrer(subject v1.Descriptor, mediaType string, document []byte, created time.Time) (v1.Image, error) {
	a := artifact{config: []byte("{}"), blob: static.NewLayer(document, types.MediaType(mediaType))}
	configDigest, _, err := v1.SHA256(bytes.NewReader(a.config))
	if err != nil {
		return nil, err
	}
	blob, err := partial.Descriptor(a.blob)
	if err != nil {
		return nil, err
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  mediaType,
		Config:        v1.Descriptor{MediaType: emptyJSON, Size: int64(len(a.config)), Digest: configDigest, Data: a.config},
		Layers:        []v1.Descriptor{*blob},
		Subject:       &v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest},
		Annotations:   map[string]string{"org.opencontainers.image.created": created.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(a)
}

// RawConfigFile, MediaType, RawManifest and LayerByDigest make an artifact a partial.CompressedImageCore.
func (a artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

func (a artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if own, err := a.blob.Digest(); err != nil || own != digest {
		return nil, fmt.Errorf("an artifact has no blob %s: %w", digest, err)
	}
	return a.blob, nil
}
