forget(id)
