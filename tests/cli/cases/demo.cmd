# The table has every sketch, nothing but the picture is left, and stderr is silent.
flashsketch demo --data synthetic --rows 1024 --threads 2 --seed 3 -o picture.svg &&
check_picture picture.svg &&
ls
