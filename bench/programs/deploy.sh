# A deployment: a build, an upload that takes long, a check. FIX=1 uploads quickly.
build() { i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done; }
build
if [ -n "$FIX" ]; then sleep 0.1; else sleep 1.2; fi
ls / >/dev/null
sleep 0.2
