// Package nodeload forecasts what each node uses of CPU and memory.
package nodeload
