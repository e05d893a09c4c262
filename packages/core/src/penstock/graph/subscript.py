newaxis = None
