// Package sbom lists what a binary consists of, from what the Go linker wrote into it.
package sbom

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/package-url/packageurl-go"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	noAssertion = "NOASSERTION"
	documentID  = "DOCUMENT"
)

// SPDX returns a document of SPDX 2.3 in JSON for a binary of a version: its own module, those that
// it was linked from, and Go's standard library. The same binary gives the same document.
func SPDX(info *debug.BuildInfo, version string, created time.Time) ([]byte, error) {
	if info.Main.Path == "" {
		return nil, errors.New("the binary names no module: it must be built with Go modules")
	}
	// The namespace of a document is its own: it changes with what the binary was made of.
	sum := sha256.Sum256([]byte(info.String()))
	d := spdx.Document{
		SPDXVersion:    spdx.Version,
		DataLicense:    spdx.DataLicense,
		SPDXIdentifier: documentID,
		DocumentName:   info.Main.Path + "@" + version,
		DocumentNamespace: fmt.Sprintf("https://github.com/foresail/foresail/spdx/%s-%s", version,
			hex.EncodeToString(sum[:])),
		CreationInfo: &spdx.CreationInfo{Created: created.UTC().Format(time.RFC3339), Creators: []common.Creator{
			{CreatorType: "Organization", Creator: "Foresail"},
			{CreatorType: "Tool", Creator: "internal/tools/release"},
		}},
	}
	add := func(path, version string) *spdx.Package {
		p := module(len(d.Packages), path, version)
		from, relationship := common.ElementID("module-0"), common.TypeRelationshipDependsOn
		if len(d.Packages) == 0 {
			from, relationship = documentID, common.TypeRelationshipDescribe
		}
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, &spdx.Relationship{
			RefA:         common.DocElementID{ElementRefID: from},
			RefB:         common.DocElementID{ElementRefID: p.PackageSPDXIdentifier},
			Relationship: relationship,
		})
		return p
	}
	add(info.Main.Path, version).PackageLicenseDeclared = "Apache-2.0"
	add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version)
	}
	return json.MarshalIndent(d, "", "  ")
}

func module(number int, modulePath, version string) *spdx.Package {
	namespace, name := path.Split(modulePath)
	purl := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, "")
	return &spdx.Package{
		PackageSPDXIdentifier:   common.ElementID(fmt.Sprintf("module-%d", number)),
		PackageName:             modulePath,
		PackageVersion:          version,
		PackageDownloadLocation: noAssertion,
		PackageLicenseConcluded: noAssertion,
		PackageLicenseDeclared:  noAssertion,
		PackageCopyrightText:    noAssertion,
		PackageExternalReferences: []*spdx.PackageExternalReference{
			{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl.ToString()},
		},
	}
}
