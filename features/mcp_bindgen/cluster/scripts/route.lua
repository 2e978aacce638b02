local epochs = {}
for i = 5, #ARGV do epochs[ARGV[i]] = true end
return send_others(#ARGV > 4 and epochs, 'post', 'body', ARGV[4])
