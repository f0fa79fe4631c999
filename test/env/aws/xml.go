package awstest

import (
	"encoding/xml"
	"strings"
)

// node is an XML element.
type node struct {
	XMLName xml.Name
	Text    string  `xml:",chardata"`
	Nodes   []*node `xml:",any"`
}

func parseXML(data []byte) (*node, error) {
	tree := new(node)
	return tree, xml.Unmarshal(data, tree)
}

func (n *node) bytes() []byte {
	data, err := xml.Marshal(n)
	if err != nil {
		panic(err) // the tree was parsed before
	}
	return data
}

// child returns the first child with a name; nil if there is none. nil has no children.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	for _, child := range n.Nodes {
		if child.XMLName.Local == name {
			return child
		}
	}
	return nil
}

func (n *node) items() []*node {
	if n == nil {
		return nil
	}
	return n.Nodes
}

func (n *node) text(name string) string {
	if child := n.child(name); child != nil {
		return strings.TrimSpace(child.Text)
	}
	return ""
}

func element(name string, nodes ...*node) *node {
	return &node{XMLName: xml.Name{Local: name}, Nodes: nodes}
}

func textOf(name, text string) *node { return &node{XMLName: xml.Name{Local: name}, Text: text} }
