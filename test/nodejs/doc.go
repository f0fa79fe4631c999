// Package nodejs proves the Node.js example of the documentation (docs/examples/nodejs) on a real control plane, with a
// Node.js process for every pod. It needs the node command.
package nodejs
