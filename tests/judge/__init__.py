"""PyTorch's own databases as the judge: op_db, module_db and optim_db on a device, against the CPU."""
