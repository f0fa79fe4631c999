// Package sbom says what a binary consists of, from what the Go linker wrote into it.
package sbom

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The parts of a document of SPDX 2.3 that it needs.
type document struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creationInfo   `json:"creationInfo"`
	Packages          []spdxPackage  `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creationInfo struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	SPDXID           string        `json:"SPDXID"`
	Name             string        `json:"name"`
	VersionInfo      string        `json:"versionInfo,omitempty"`
	DownloadLocation string        `json:"downloadLocation"`
	FilesAnalyzed    bool          `json:"filesAnalyzed"`
	LicenseConcluded string        `json:"licenseConcluded"`
	LicenseDeclared  string        `json:"licenseDeclared"`
	CopyrightText    string        `json:"copyrightText"`
	ExternalRefs     []externalRef `json:"externalRefs"`
}

type externalRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Related string `json:"relatedSpdxElement"`
	Type    string `json:"relationshipType"`
}

const (
	noAssertion = "NOASSERTION"
	documentID  = "SPDXRef-DOCUMENT"
)

// SPDX returns a document of SPDX 2.3 in JSON for a binary of a version: its own module, those that it was linked from, and
// Go's standard library. The same binary gives the same document.
func SPDX(info *debug.BuildInfo, version string, created time.Time) ([]byte, error) {
	if info.Main.Path == "" {
		return nil, fmt.Errorf("the binary names no module: it must be built with Go modules")
	}
	main := module(info.Main.Path, version)
	main.LicenseDeclared = "Apache-2.0"
	d := document{
		SPDXVersion:  "SPDX-2.3",
		DataLicense:  "CC0-1.0",
		SPDXID:       documentID,
		Name:         info.Main.Path + "@" + version,
		CreationInfo: creationInfo{Created: created.UTC().Format(time.RFC3339), Creators: []string{"Organization: Foresail", "Tool: internal/tools/release"}},
		Packages:     []spdxPackage{main, module("stdlib", strings.TrimPrefix(info.GoVersion, "go"))},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d.Packages = append(d.Packages, module(m.Path, m.Version))
	}
	d.Relationships = []relationship{{documentID, main.SPDXID, "DESCRIBES"}}
	for _, p := range d.Packages[1:] {
		d.Relationships = append(d.Relationships, relationship{main.SPDXID, p.SPDXID, "DEPENDS_ON"})
	}
	// The name of a document is its own: it changes with whatever the binary was made of.
	sum := sha256.Sum256([]byte(info.String()))
	d.DocumentNamespace = fmt.Sprintf("https://github.com/foresail/foresail/spdx/%s-%s", version, hex.EncodeToString(sum[:]))
	ids := map[string]bool{}
	for _, p := range d.Packages {
		if ids[p.SPDXID] {
			return nil, fmt.Errorf("two modules would both be %s", p.SPDXID)
		}
		ids[p.SPDXID] = true
	}
	return json.MarshalIndent(d, "", "  ")
}

// foreign are the characters that an id of SPDX cannot have.
var foreign = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func module(path, version string) spdxPackage {
	purl := "pkg:golang/" + escaped(path)
	if version != "" {
		purl += "@" + escaped(version)
	}
	return spdxPackage{
		SPDXID:           "SPDXRef-" + foreign.ReplaceAllString(path+"-"+version, "-"),
		Name:             path,
		VersionInfo:      version,
		DownloadLocation: noAssertion,
		LicenseConcluded: noAssertion,
		LicenseDeclared:  noAssertion,
		CopyrightText:    noAssertion,
		ExternalRefs:     []externalRef{{"PACKAGE-MANAGER", "purl", purl}},
	}
}

// escaped encodes what a purl encodes of paths and versions of Go modules: "+" and what is no ASCII letter.
func escaped(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || slices.Contains([]byte("-._~/"), c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
