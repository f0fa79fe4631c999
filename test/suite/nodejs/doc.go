// Package nodejs proves the Node.js examples of the documentation (docs/examples/nodejs and
// docs/examples/watt) on a real control plane, with a Node.js process for every pod. It needs the
// node command; that of Watt, which is long, needs npm.
package nodejs
